"""Prints the licenses of everything that is compiled into the program: crates, and the packages in the page.

    cargo metadata --format-version 1 | licenses.py WEB > THIRD-PARTY.txt

WEB is the page's directory, with its packages installed. Each text is printed once, after the names of all that it belongs to.
"""

import json
import os
import sys


def texts_in(directory):
    """The license files of a package."""
    marks = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
    names = sorted(name for name in os.listdir(directory) if name.upper().startswith(marks))
    paths = [os.path.join(directory, name) for name in names]
    texts = []
    for path in filter(os.path.isfile, paths):
        with open(path, encoding="utf-8", errors="replace") as file:
            texts.append(file.read().replace("\r\n", "\n").strip())
    return texts


def crates(metadata):
    """The crates that the program is built from; not those that only its build or its tests need."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    [start] = [id for id in metadata["workspace_members"] if packages[id]["name"] == "alongside"]
    seen, waiting = set(), [start]
    while waiting:
        id = waiting.pop()
        if id in seen:
            continue
        seen.add(id)
        for dependency in nodes[id]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    for package in (packages[id] for id in seen):
        # Our own have none.
        if package["source"] is not None:
            directory = os.path.dirname(package["manifest_path"])
            yield f"{package['name']} {package['version']}", package["license"], texts_in(directory)


def page_packages(web):
    with open(os.path.join(web, "package-lock.json"), encoding="utf-8") as file:
        lock = json.load(file)
    for path, package in lock["packages"].items():
        if path and not package.get("dev") and not package.get("optional"):
            directory = os.path.join(web, path)
            if not os.path.isdir(directory):
                sys.exit(f"cannot read the license of {path}: {directory} does not exist; run `npm ci` in {web}")
            name = path.split("node_modules/")[-1]
            yield f"{name} {package['version']}", package.get("license"), texts_in(directory)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    everything = sorted([*crates(json.load(sys.stdin)), *page_packages(sys.argv[1])])
    by_text = {}
    print("alongside contains these packages, under these licenses:\n")
    for name, expression, texts in everything:
        if not expression and not texts:
            sys.exit(f"{name} has no license")
        print(f"{name}: {expression or 'see below'}")
        for text in texts:
            by_text.setdefault(text, []).append(name)
    for text, names in by_text.items():
        print(f"\n{'=' * 80}\n{', '.join(names)}\n{'=' * 80}\n\n{text}")


if __name__ == "__main__":
    main()
