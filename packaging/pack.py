"""Writes archives and wheels with nothing in them but the files: no times, no owners, always the same order.

    pack.py archive OUT DIRECTORY          OUT is a .zip, or a tar file compressed with gzip
    pack.py wheel OUT DIRECTORY            a wheel's files, without RECORD
    pack.py gzip FILE...                   each becomes FILE.gz
    pack.py sums FILE...                   prints the hash, the size and the name of each
"""

import base64
import gzip
import hashlib
import io
import os
import stat
import sys
import tarfile
import zipfile


def files_in(directory):
    """Path and name of every file, in order; names are relative and have slashes."""
    found = []
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            found.append((os.path.relpath(path, directory).replace(os.sep, "/"), path))
    return sorted(found)


def mode_of(path, name):
    # Windows has no such bits.
    is_program = os.stat(path).st_mode & stat.S_IXUSR or os.path.basename(name) == "alongside"
    return 0o755 if is_program else 0o644


def read(path):
    with open(path, "rb") as file:
        return file.read()


def gzipped(data):
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as file:
        file.write(data)
    return packed.getvalue()


def write_zip(out, contents):
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, mode, data in contents:
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def write_tar(out, contents):
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, mode, data in contents:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    with open(out, "wb") as file:
        file.write(gzipped(plain.getvalue()))


def archive(out, directory):
    top = os.path.basename(os.path.normpath(directory))
    contents = [(f"{top}/{name}", mode_of(path, name), read(path)) for name, path in files_in(directory)]
    (write_zip if out.endswith(".zip") else write_tar)(out, contents)


def wheel(out, directory):
    contents = [(name, mode_of(path, name), read(path)) for name, path in files_in(directory)]
    [metadata] = {name.split("/")[0] for name, _, _ in contents if ".dist-info/" in name}
    lines = []
    for name, _, data in contents:
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    lines.append(f"{metadata}/RECORD,,\n")
    write_zip(out, [*contents, (f"{metadata}/RECORD", 0o644, "".join(lines).encode())])


def gzip_files(*paths):
    for path in paths:
        with open(f"{path}.gz", "wb") as file:
            file.write(gzipped(read(path)))
        os.remove(path)


def sums(*paths):
    for path in paths:
        data = read(path)
        print(hashlib.sha256(data).hexdigest(), len(data), os.path.basename(path), sep="\t")


if __name__ == "__main__":
    commands = {"archive": archive, "wheel": wheel, "gzip": gzip_files, "sums": sums}
    if len(sys.argv) < 3 or sys.argv[1] not in commands:
        sys.exit(__doc__)
    commands[sys.argv[1]](*sys.argv[2:])
