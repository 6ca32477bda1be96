package blackbox

import (
	"fmt"
	"os/exec"
	"sync"
	"testing"

	"castellan/domain/kit/storetest"
)

const DemoPassword = "harbour-lantern-orchard-9"

// DemoAccount is the i-th demo account that can log in.
func DemoAccount(i int) Account {
	return Account{Country: "90", Phone: fmt.Sprint(5000000000 + i), Password: DemoPassword}
}

// DemoAdmin is the administrator of the demo data, who logs in by mail.
func DemoAdmin() Account {
	a := DemoAccount(1)
	a.Mail = "admin@demo.example"
	return a
}

// NewDemoSite is NewSite on SQLite with the data of a demonstration of 100 users. The data are made once for each test
// process, and each site has a copy.
func NewDemoSite(t testing.TB) *Site {
	t.Helper()
	s := NewSite(t, "sqlite")
	data := storetest.Value(demonstrated())(t)
	if out, err := exec.Command("cp", "-a", data, s.Dir).CombinedOutput(); err != nil {
		t.Fatalf("copy the data of the demonstration: %v: %s", err, out)
	}
	return s
}

var demonstrated = sync.OnceValues(func() (string, error) {
	return prepared("demo", "demo", "--users", "100", "--password", DemoPassword)
})
