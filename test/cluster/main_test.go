// Package cluster tests a started service from outside, like package blackbox: several nodes of one cluster,
// and processes without a cluster.
package cluster

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
