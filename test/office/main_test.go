// Package office tests a started service from outside, like package blackbox: the work of operators. That is money,
// approvals by a second person, contracts, owners of accounts and messages. It also is what every area uses: the audit,
// jobs, keys, metrics, published documents, commands, upgrades and the files for operators.
package office

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, map[string]func(){moverRole: mover}) }
