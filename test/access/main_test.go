// Package access tests a started service from outside, as package blackbox does:
// the accounts' access: logins, second factors, devices, sessions, roles and keys of clients.
package access

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
