// Write the page's files into a folder: node build.mjs FOLDER. The same sources give the same bytes everywhere.
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { build } from "esbuild";

const root = import.meta.dirname;
const target = path.resolve(process.argv[2] ?? path.join(root, "../memkit/serve/page"));

await mkdir(target, { recursive: true });
const built = await build({
  absWorkingDir: root,
  entryPoints: { app: "src/main.tsx" },
  outdir: target,
  bundle: true,
  minify: true,
  metafile: true,
  format: "esm",
  target: ["chrome110", "firefox115", "safari16.4"],
  charset: "utf8",
  legalComments: "none", // licenses.txt has them
  logLevel: "warning",
});
await copyFile(path.join(root, "src/index.html"), path.join(target, "index.html"));
await writeFile(path.join(target, "licenses.txt"), await licenses(Object.keys(built.metafile.inputs)));

/** Return the license of each npm package that one of these files comes from. */
async function licenses(files) {
  const names = files.map((file) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1]);
  const parts = [];
  for (const name of [...new Set(names)].filter(Boolean).sort()) {
    const folder = path.join(root, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(path.join(folder, "package.json"), "utf8"));
    const found = (await readdir(folder)).filter((file) => /^licen[cs]e/i.test(file)).sort();
    if (!found.length) throw new Error(`${name} has no license file`);
    const texts = await Promise.all(found.map((file) => readFile(path.join(folder, file), "utf8")));
    parts.push(`${name} ${version} (${license})\n\n${texts.map((text) => text.replace(/\r\n/g, "\n").trim()).join("\n\n")}\n`);
  }
  return `The page contains these packages.\n\n${parts.join(`\n${"-".repeat(80)}\n\n`)}`;
}
