package blackbox

import (
	"os"
	"path/filepath"
)

// Shell runs commands of a document in a folder, with the settings of the site and castellan in the path. The first
// failure ends them, and they end their last background process. docker and kubectl do nothing.
func (s *Site) Shell(folder, commands string) Output {
	s.t.Helper()
	s.fill()
	bin := s.t.TempDir()
	if err := os.Symlink(s.program(), filepath.Join(bin, "castellan")); err != nil {
		s.t.Fatal(err)
	}
	shell := *s
	shell.Program = "/bin/sh"
	return shell.Command("", "-euc", `cd "$1" && PATH="$2:$PATH"
docker() { :; }
kubectl() { :; }
: & trap 'kill $! 2>/dev/null && wait || :' EXIT
`+commands, "sh", folder, bin)
}
