"""The synthetic transcripts are of the client's form."""

from __future__ import annotations

from pathlib import Path

from memkit.agents.claude_code.files import find_sources
from memkit.agents.claude_code.transcript import Transcript
from memkit.agents.claude_code.turn import read_turns


def test_every_line_is_understood(tmp_path: Path) -> None:
    from transcripts import SyntheticTranscripts

    path = SyntheticTranscripts().write_session(tmp_path, 0.5)
    transcript = Transcript(path)
    turns = [turn for turn in read_turns(transcript) if turn.is_memory]
    assert transcript.counts == {}
    assert len(turns) > 5
    assert all(turn.answer and turn.tools and turn.prompt_id for turn in turns)
    lines = sorted(map(len, path.read_bytes().splitlines()))
    assert lines[-1] > 20 * lines[len(lines) // 2]  # a few results are as large as real ones
    (source,) = find_sources([tmp_path])
    assert source.cwd.startswith("/home/synthetic/project-")
