"""Where pull requests are discussed: one comment of ours, found, made or updated."""
