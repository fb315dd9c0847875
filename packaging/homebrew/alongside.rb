class Alongside < Formula
  desc "@DESCRIPTION@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: [@LICENSES@]

@ARCHIVES@
  def install
    bin.install "alongside"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/alongside.bash" => "alongside"
    zsh_completion.install "completions/_alongside"
    fish_completion.install "completions/alongside.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/alongside --version")
  end
end
