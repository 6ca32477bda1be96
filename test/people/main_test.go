// Package people tests a started service from outside, like package blackbox: the owners of accounts, with
// identities and companies.
package people

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
