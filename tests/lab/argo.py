"""Judges a file of Argo Workflows by the models that are made from Argo's own description of its kinds: argo.py FILE.

What a model does not know it drops without a word, so what comes out is compared with what went in."""

import sys

import yaml
from hera.workflows import models


def dropped(before, after, path):
    if isinstance(before, dict) and isinstance(after, dict):
        for name, below in before.items():
            if name in after:
                yield from dropped(below, after[name], f"{path}.{name}")
            else:
                yield f"{path}.{name}: there is no such field"
    elif isinstance(before, list) and isinstance(after, list):
        for number, (one, other) in enumerate(zip(before, after)):
            yield from dropped(one, other, f"{path}[{number}]")


def problems(document):
    model = getattr(models, document["kind"], None)
    if not document["apiVersion"].startswith("argoproj.io/"):
        return
    if model is None:
        yield f"{document['kind']}: there is no such kind"
        return
    try:
        made = model.model_validate(document)
    except ValueError as error:
        yield str(error)
        return
    yield from dropped(document, made.model_dump(mode="json", by_alias=True, exclude_unset=True), document["kind"])
    spec = document["spec"].get("workflowSpec", document["spec"])
    names = [template["name"] for template in spec["templates"]]
    called = [spec["entrypoint"]] + [step["template"] for t in spec["templates"] for group in t.get("steps", []) for step in group]
    yield from (f"{document['kind']}: there is no template {name}" for name in called if name not in names)


with open(sys.argv[1], encoding="utf-8") as file:
    FOUND = [problem for document in yaml.safe_load_all(file) if document for problem in problems(document)]
print("\n".join(FOUND))
sys.exit(1 if FOUND else 0)
