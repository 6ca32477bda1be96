package child

import (
	"os/exec"
	"testing"
)

// A process has stopped when Freeze returns, not a moment later.
func TestFreeze(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	state := func() string { return Stat(cmd.Process.Pid)[0] }
	for range 50 {
		Freeze(cmd.Process.Pid)
		if s := state(); s != "T" {
			t.Fatalf("state %s of a frozen process, want T", s)
		}
		Thaw(cmd.Process.Pid)
	}
}
