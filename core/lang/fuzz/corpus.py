"""corpus.py unpack FILE FOLDER, or pack FOLDER FILE: what the fuzzers keep, as one JSON list of texts, a line each, and as the folder that they work on."""

import hashlib
import json
import pathlib
import sys

# So many are kept, of all lengths: enough to begin with, and few enough to run with the tests.
MOST = 300


def unpack(file: str, folder: str) -> None:
    for text in json.loads(pathlib.Path(file).read_text()):
        data = text.encode()
        (pathlib.Path(folder) / hashlib.sha1(data).hexdigest()).write_bytes(data)


def pack(folder: str, file: str) -> None:
    texts = set()
    for path in pathlib.Path(folder).iterdir():
        try:
            texts.add(path.read_bytes().decode())
        except UnicodeDecodeError:
            continue
    by_length = sorted(texts, key=lambda text: (len(text), text))
    count = min(MOST, len(by_length))
    kept = sorted(by_length[i * len(by_length) // count] for i in range(count))
    pathlib.Path(file).write_text("[\n" + ",\n".join(json.dumps(text) for text in kept) + "\n]\n")


if __name__ == "__main__":
    {"unpack": unpack, "pack": pack}[sys.argv[1]](sys.argv[2], sys.argv[3])
