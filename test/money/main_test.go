// Package money tests a started service from outside, as package blackbox does:
// money: the ledger, the address book, rates, balances of providers, and money that moves while processes are
// killed.
package money

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, map[string]func(){moverRole: mover}) }
