// Package access tests a started service from outside, like package blackbox: logins, second factors, devices,
// sessions, roles and client keys.
package access

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
