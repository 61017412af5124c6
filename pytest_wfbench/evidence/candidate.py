"""The candidate's files as a sweep ran with them: kept byte for byte beside its rows, for whoever applies them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pytest_wfbench.digests import digest_bytes, digest_tree
from pytest_wfbench.evidence.manifest import Candidate
from pytest_wfbench.evidence.store import EvidenceError
from pytest_wfbench.files import UnsafeFile, read_untrusted, write_atomic

CANDIDATE = "candidate"
FILE_LIMIT = 4 << 20
REMEDY = "Run the sweep again, or restore the directory from where it was archived"


def write_candidate(results: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write ``candidate/<skill>/…`` below a new results directory; nothing is redacted, for its digest is bound."""
    for name, data in files:
        path = results / CANDIDATE / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, data)


def read_candidate(results: Path, candidate: Candidate) -> dict[str, bytes]:
    """Return the candidate's files by name, each of the size and digest that the manifest binds.

    Raises:
        EvidenceError: for a file that is missing, behind a link or changed, and where they are no such overlay.
    """
    files: dict[str, bytes] = {}
    for bound in candidate.files:
        place = str(results / CANDIDATE / bound.path)
        try:
            data = read_untrusted(results, f"{CANDIDATE}/{bound.path}", FILE_LIMIT)
        except FileNotFoundError as error:
            raise EvidenceError(place, "no such file", REMEDY) from error
        except (UnsafeFile, OSError) as error:
            raise EvidenceError(place, str(error), REMEDY) from error
        if digest_bytes(data) != bound.sha256:
            found = digest_bytes(data)
            raise EvidenceError(place, f"its digest is {found}, the sweep ran with {bound.sha256}", REMEDY)
        files[bound.path] = data
    if (found := digest_tree(files.items())) != candidate.overlay_digest:
        message = f"the overlay's digest is {found}, the evidence is bound to {candidate.overlay_digest}"
        raise EvidenceError(str(results / CANDIDATE), message, REMEDY)
    return files
