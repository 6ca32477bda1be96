// Package delivery tests a started service from outside, as package blackbox does:
// messages and wake-ups on their way out: caps, retries, webhooks and Web Push.
package delivery

import (
	"testing"

	"castellan/internal/blackbox"
)

func TestMain(m *testing.M) { blackbox.Drive(m, nil) }
