// Package replay tests a started service from outside, like package blackbox: attacks on other services,
// replayed. docs/replayed.md lists them.
package replay

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
