// Package delivery tests a started service from outside, like package blackbox: outgoing messages and
// wake-ups, with caps, retries, webhooks and Web Push.
package delivery

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
