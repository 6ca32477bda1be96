package harness

import (
	"fmt"

	"castellan/internal/blackbox"
)

const DemoPassword = "harbour-lantern-orchard-9"

// DemoAccount is the i-th demo account that can log in.
func DemoAccount(i int) blackbox.Account {
	return blackbox.Account{Country: "90", Phone: fmt.Sprint(5000000000 + i), Password: DemoPassword}
}
