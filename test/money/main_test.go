// Package money tests a started service from outside, like package blackbox: the ledger, the address book,
// rates, balances of providers, and transfers while processes are killed.
package money

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, map[string]func(){moverRole: mover}) }
