// Package access tests a started service from outside, like package blackbox: who gets in. That is logins, second
// factors, devices, sessions, roles and client keys, and the firewall, the guard and the edge of HTTP.
package access

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
