// Package guard tests a started service from outside, like package blackbox: the firewall and the edge of
// HTTP.
package guard

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
