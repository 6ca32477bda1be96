package blackbox

import (
	"os"
	"path/filepath"

	"castellan/domain/kit/storetest"
)

// Shell runs commands of a document in a folder, with the settings of the site and castellan in the path. The first
// failure ends them, and with them their last background process. A sleep fails if that one has ended. docker and
// kubectl do nothing.
func (s *Site) Shell(folder, commands string) Output {
	s.t.Helper()
	s.fill()
	bin := s.t.TempDir()
	storetest.Must(s.t, os.Symlink(s.program(), filepath.Join(bin, "castellan")))
	shell := *s
	shell.Program = "/bin/sh"
	return shell.Command("", "-euc", `cd "$1" && PATH="$2:$PATH"
sleep() { kill -0 $! && command sleep "$1"; }
docker() { :; }
kubectl() { :; }
: & trap 'kill $! 2>/dev/null && wait || :' EXIT
`+commands, "sh", folder, bin)
}
