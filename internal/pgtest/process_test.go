package pgtest

import (
	"fmt"
	"os/exec"
	"testing"
)

// A process is frozen as soon as Freeze returns.
func TestFreeze(t *testing.T) {
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Kill()
		cmd.Wait()
	}()
	state := func() string { return statOf(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))[0] }
	for range 50 {
		Freeze(cmd.Process.Pid)
		if s := state(); s != "T" {
			t.Fatalf("state %s of a frozen process, want T", s)
		}
		Thaw(cmd.Process.Pid)
	}
}
