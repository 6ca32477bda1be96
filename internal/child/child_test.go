package child

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// Variables that make this test binary a child: an owner of another child, or a program that answers.
const (
	envOwner  = "CHILD_TEST_OWNER"
	envAnswer = "CHILD_TEST_ANSWER"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(envOwner) != "":
		p, err := Start(exec.Command("sleep", "60"))
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		<-p.Ended()
	case os.Getenv(envAnswer) != "":
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			fmt.Println("got " + lines.Text())
		}
		fmt.Println("the last words")
		os.Exit(3)
	default:
		os.Exit(m.Run())
	}
}

func interact(t *testing.T, variable string) *Process {
	t.Helper()
	cmd := storetest.Value(Self(variable + "=1"))(t)
	return storetest.Value(Interact(cmd))(t)
}

func TestChildEndsWithKilledOwner(t *testing.T) {
	owner := interact(t, envOwner)
	line := storetest.Value(owner.ReadLine())(t)
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil || !Alive(pid) {
		t.Fatalf("the child of the owner is %q: %v", line, err)
	}
	owner.Kill()
	for deadline := time.Now().Add(10 * time.Second); Alive(pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlives its owner", pid)
		}
	}
}

func TestInteract(t *testing.T) {
	p := interact(t, envAnswer)
	for range 3 {
		if got, err := p.Ask("x"); err != nil || got != "got x" {
			t.Fatalf("%q: %v", got, err)
		}
	}
	if err := p.End(10 * time.Second); err == nil || !strings.Contains(err.Error(), "the last words") {
		t.Errorf("after status 3: %v", err)
	}
	if p.ExitCode() != 3 || p.EndedAt().After(time.Now()) {
		t.Errorf("exit %d at %v", p.ExitCode(), p.EndedAt())
	}
}

func TestStartOfMissingProgram(t *testing.T) {
	if p, err := Start(exec.Command("/nonexistent")); err == nil || p != nil {
		t.Errorf("started %v: %v", p, err)
	}
}
