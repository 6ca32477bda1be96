// Package people tests a started service from outside, as package blackbox does:
// who the accounts belong to: identities and companies.
package people

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
