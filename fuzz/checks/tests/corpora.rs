//! The committed corpora, as an ordinary test: everything that a fuzzer found once stays found.

use std::fs;
use std::path::Path;

use alongside_fuzz_checks::CHECKS;

#[test]
fn every_file_of_the_corpora_passes_its_check() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for (name, check) in CHECKS {
        let mut files: Vec<_> = fs::read_dir(corpora.join(name))
            .unwrap_or_else(|error| panic!("the corpus of {name}: {error}"))
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert!(!files.is_empty(), "{name} has a corpus");
        for file in files {
            println!("{}", file.display());
            check(&fs::read(&file).unwrap());
        }
    }
}
