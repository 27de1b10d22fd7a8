"""A stand-in for OpenAI, Azure OpenAI, Ollama, Google, and Voyage on the loopback: their embedding endpoints, and their errors."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

OPENAI = "/v1/embeddings"
AZURE = "/openai/deployments/mine/embeddings?api-version=2024-10-21"
OLLAMA = "/api/embed"
GOOGLE = "/v1/models/gemini-embedding-001:batchEmbedContents"
VOYAGE = "/voyage/v1/embeddings"

KEY = "sk-test-3f9a1b77c2"


@dataclass(frozen=True)
class Request:
    """A request to the service."""

    path: str
    model: str
    texts: list[str]
    headers: dict[str, str]
    purpose: str = ""  # Google's task type, Voyage's input type


def words(text: str, dimensions: int = 8) -> list[float]:
    """Return a bag of hashed words: texts that share words have near vectors."""
    vector = [0.1] * dimensions
    for word in text.lower().split():
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % dimensions] += digest[1] / 100
    return vector


def base64_of(vector: Any) -> Any:
    """Return float32 numbers as base64, and anything else as it is."""
    if not all(isinstance(number, float) for number in vector):
        return vector
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


class Service(ThreadingHTTPServer):
    """Answers with `vectors` of the texts, or with the status and message that `refusal` returns."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[Request] = []
        self.vectors: Callable[[list[str]], list[Any]] = self.vectors_of_words
        self.refusal: Callable[[list[str]], tuple[int, str] | None] = lambda texts: None

    @staticmethod
    def vectors_of_words(texts: list[str]) -> list[Any]:
        """Return good vectors."""
        return [words(text) for text in texts]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def texts(self) -> list[str]:
        """All texts of the requests, in order."""
        return [text for request in self.requests for text in request.texts]

    def give(self, sign: str, vector: Any) -> None:
        """Answer with `vector` for texts that contain `sign`."""
        self.vectors = lambda texts: [vector if sign in t else words(t) for t in texts]

    def refuse(self, status: int, message: str = "no", sign: str = "") -> None:
        """Reject requests with texts that contain `sign`."""
        self.refusal = lambda texts: ((status, message) if any(sign in text for text in texts) else None)

    def relent(self) -> None:
        """Accept all requests again."""
        self.refusal = lambda texts: None


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path == GOOGLE:
            each = body["requests"]
            texts = ["".join(part["text"] for part in one["content"]["parts"]) for one in each]
            model, purpose = each[0]["model"].removeprefix("models/"), each[0]["taskType"]
        else:
            texts, model, purpose = body["input"], body["model"], body.get("input_type", "")
        self.server.requests.append(Request(self.path, model, texts, headers, purpose))
        refusal = self.server.refusal(texts)
        if refusal is not None:
            status, message = refusal
            if self.path == VOYAGE:
                self._answer(status, {"detail": message})
                return
            has_more = self.path in (OPENAI, AZURE, GOOGLE)
            self._answer(status, {"error": {"code": status, "message": message} if has_more else message})
            return
        vectors = self.server.vectors(texts)
        if self.path in (OPENAI, AZURE):
            data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
            usage = {"prompt_tokens": 1, "total_tokens": 1}
            self._answer(200, {"object": "list", "data": data, "model": model, "usage": usage})
        elif self.path == VOYAGE:
            # Its client asks for base64.
            data = [{"object": "embedding", "index": n, "embedding": base64_of(v)} for n, v in enumerate(vectors)]
            self._answer(200, {"object": "list", "data": data, "model": model, "usage": {"total_tokens": 1}})
        elif self.path == GOOGLE:
            self._answer(200, {"embeddings": [{"values": vector} for vector in vectors]})
        elif self.path == OLLAMA:
            self._answer(200, {"model": model, "embeddings": vectors})
        else:
            self._answer(404, {"error": self.path})

    def _answer(self, status: int, value: Any) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("x-should-retry", "false")  # OpenAI's client would wait and try again
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def running() -> Iterator[Service]:
    """Run a service."""
    with Service() as service:
        thread = threading.Thread(target=service.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield service
        service.shutdown()
        thread.join()


BAD_VECTORS = {
    "null": [None] * 8, "NaN": [math.nan] + [1.0] * 7, "infinite": [math.inf] + [1.0] * 7, "empty": [],
    "zeros": [0.0] * 8,
}  # fmt: skip
"""Unusable vectors, by their fault."""
