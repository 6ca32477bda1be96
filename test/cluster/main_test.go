// Package cluster tests a started service from outside, as package blackbox does:
// several nodes that act as one, and several that do not.
package cluster

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
