// Package office tests a started service from outside, like package blackbox: announcements, contracts and
// approvals by a second person.
package office

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
