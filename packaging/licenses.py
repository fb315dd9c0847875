"""Prints the licenses of everything that is compiled into the program: crates, what is in them, the packages in the page, the standard
library and the C library.

    cargo metadata --format-version 1 | licenses.py WEB SYSROOT > THIRD-PARTY.txt

WEB is the page's directory, with its packages installed; SYSROOT is what `rustc --print sysroot` prints. Each text is printed once,
after the names of all that it belongs to.
"""

import glob
import html
import json
import os
import re
import struct
import sys
import zlib


def texts_in(directory):
    """The license files of a package."""
    marks = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")
    names = sorted(name for name in os.listdir(directory) if name.upper().startswith(marks))
    paths = [os.path.join(directory, name) for name in names]
    return [read(path) for path in filter(os.path.isfile, paths)]


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return clean(file.read())


def clean(text):
    return text.replace("\r\n", "\n").strip()


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
            if package["name"] == "two-face":
                yield from syntaxes(os.path.join(directory, "generated/acknowledgements_full.bin"))


def syntaxes(path):
    """The syntax definitions in two-face, as far as their licenses want to be named. The program has none of its themes.

    A compressed dump: a list of the license's kind, its text and its path, for syntaxes and then for themes.
    """
    with open(path, "rb") as file:
        data = zlib.decompress(file.read())
    at = 0

    def number(kind):
        nonlocal at
        [value] = struct.unpack_from(kind, data, at)
        at += struct.calcsize(kind)
        return value

    def text():
        nonlocal at
        length = number("<Q")
        at += length
        return data[at - length : at].decode()

    lists = [[(number("<I"), text(), text()) for _ in range(number("<Q"))] for _ in ("syntaxes", "themes")]
    if at != len(data):
        sys.exit(f"cannot read {path}: its format has changed")
    for _, license, name in lists[0]:
        yield f"{name} in two-face", "see below", [clean(license)]


# Crates of Rust's standard library that only its build, its tests or other systems need.
NOT_IN_STD = {
    *("cc", "getopts", "rand", "rand_core", "rand_xorshift", "shlex"),
    *("dlmalloc", "fortanix-sgx-abi", "hermit-abi", "moto-rt", "r-efi", "r-efi-alloc", "unwinding", "vex-sdk", "wasi", "wit-bindgen"),
}


def standard_library(sysroot):
    """Rust's standard library, and the crates in it. Not every installation has their texts."""
    directory = os.path.join(sysroot, "share/doc/rust")
    paths = [os.path.join(directory, "licenses", f"{name}.txt") for name in ("MIT", "Apache-2.0", "Unicode-3.0")]
    texts = [read(path) for path in filter(os.path.isfile, paths)]
    notices = os.path.join(directory, "COPYRIGHT-library.html")
    if os.path.isfile(notices):
        page = read(notices)
    else:
        page = ""
        print(f"the licenses are without those in Rust's standard library: {notices} does not exist", file=sys.stderr)
    own, _, others = page.partition('<h2 id="out-of-tree-dependencies">')
    if own:
        own = html.unescape(re.sub(r"<[^>]*>", "", own.partition('<h2 id="longer-version">')[2]))
        texts.insert(0, re.sub(r"\s*\n\s*", "\n", own).strip())
    yield "Rust's standard library, by the Rust Project Developers", "MIT OR Apache-2.0", texts
    for section in others.split("<h3>")[1:]:
        name = re.match(r"\W*(.+?)-(\d[^<]*)</h3>", section)
        license = re.search(r"<b>License:</b>([^<]*)", section)
        if not name or not license:
            sys.exit(f"cannot read {notices}: its format has changed")
        if name[1] in NOT_IN_STD:
            continue
        texts = [clean(html.unescape(text)) for text in re.findall(r"<pre>(.*?)</pre>", section, re.DOTALL)]
        yield f"{name[1]} {name[2]} in Rust's standard library", html.unescape(license[1]).strip(), texts


def others():
    """What no tool lists. A file's first line is a name and a license."""
    for path in sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "licenses", "*.txt"))):
        first, _, text = read(path).partition("\n")
        name, _, license = first.rpartition(": ")
        yield name, license, [text.strip()]


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
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    web, sysroot = sys.argv[1:]
    everything = sorted([*crates(json.load(sys.stdin)), *page_packages(web), *standard_library(sysroot), *others()])
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
