package blackbox

import (
	"fmt"
)

const DemoPassword = "harbour-lantern-orchard-9"

// DemoAccount is the i-th demo account that can log in.
func DemoAccount(i int) Account {
	return Account{Country: "90", Phone: fmt.Sprint(5000000000 + i), Password: DemoPassword}
}
