// Packages the extension as a .vsix, which is a zip archive.
//
//   node package.mjs [--out FILE] [--program FILE --target PLATFORM] [--license FILE]...
//
// With `--program`, the package has the `alongside` program inside and is for one platform, such as linux-x64. Without it, the
// extension uses the program on the PATH. What is published has more licenses than this directory: those of the program and of
// everything that it and `dist/` are made from.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { parseArgs } from "node:util";
import { crc32, deflateRawSync } from "node:zlib";

const { values } = parseArgs({
  options: {
    out: { type: "string" },
    program: { type: "string" },
    target: { type: "string" },
    license: { type: "string", multiple: true, default: [] },
  },
});
if ((values.program === undefined) !== (values.target === undefined)) {
  console.error("`--program` and `--target` belong together");
  process.exit(2);
}

const read = (name) => readFileSync(join(import.meta.dirname, name));
// `alongside install` packs the same files.
const files = read("vsix/files.txt").toString().trim().split("\n");
const manifest = JSON.parse(read("package.json").toString());
const entries = [
  { name: "extension.vsixmanifest", content: fill(read("vsix/extension.vsixmanifest").toString()) },
  { name: "[Content_Types].xml", content: read("vsix/content-types.xml") },
  ...files.map((name) => ({ name: `extension/${name}`, content: name === "README.md" ? withoutPictures(read(name)) : read(name) })),
  ...values.license.map((path) => ({ name: `extension/${withExtension(basename(path))}`, content: readFileSync(path) })),
];
if (values.program !== undefined) {
  const name = values.target.startsWith("win32") ? "alongside.exe" : "alongside";
  entries.push({ name: `extension/bin/${name}`, content: readFileSync(values.program), mode: 0o755 });
}
const out = values.out ?? `alongside-${manifest.version}${values.target ? `-${values.target}` : ""}.vsix`;
const archive = zip(entries);
writeFileSync(out, archive);
console.log(`${basename(out)}: ${entries.length} files, ${archive.length} bytes`);

/** The pictures are not in the package. */
function withoutPictures(text) {
  return text.toString().replaceAll(/^!\[.*\n\n/gm, "");
}

/** A file's type in `vsix/content-types.xml` follows from its extension. */
function withExtension(name) {
  return extname(name) === "" ? `${name}.txt` : name;
}

/** Fills in the template that `alongside install` uses too. */
function fill(template) {
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  return template
    .replaceAll("@VERSION@", escaped(manifest.version))
    .replaceAll("@DESCRIPTION@", escaped(manifest.description))
    .replaceAll("@ENGINE@", escaped(manifest.engines.vscode))
    .replaceAll("@REPOSITORY@", escaped(manifest.repository.url))
    .replaceAll("@TARGET@", values.target ? ` TargetPlatform="${escaped(values.target)}"` : "");
}

/** A zip archive with permission bits and without times, so that it is reproducible. */
function zip(contents) {
  const [locals, centrals] = [[], []];
  let offset = 0;
  for (const { name, content, mode = 0o644 } of contents) {
    const data = Buffer.from(content);
    const packed = deflateRawSync(data, { level: 9 });
    const path = Buffer.from(name);
    // Version 2.0, UTF-8 names, deflate, 1980-01-01.
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x0800, 2);
    common.writeUInt16LE(8, 4);
    common.writeUInt32LE(0x0021_0000, 6);
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(packed.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(path.length, 22);
    const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, path, packed]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(((0o100000 | mode) << 16) >>> 0, 6);
    rest.writeUInt32LE(offset, 10);
    // Made on Unix: the upper half of the external attributes has the mode.
    centrals.push(Buffer.concat([Buffer.from("PK\x01\x02\x14\x03"), common, rest, path]));
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(centrals);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(contents.length, 4);
  end.writeUInt16LE(contents.length, 6);
  end.writeUInt32LE(directory.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, directory, Buffer.from("PK\x05\x06"), end]);
}
