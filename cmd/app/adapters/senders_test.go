package adapters_test

import (
	"context"
	"strings"
	"testing"

	"castellan/cmd/app/adapters"
	"castellan/config"
	"castellan/domain/delivery/message"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/keyring/keyringtest"
	"castellan/domain/kit/storetest"
	"castellan/outbound/dispatch"
	"castellan/outbound/push"
	"castellan/web"
)

// The wake-up channel exists until it is switched off. It calls no host in this network except in development mode, and
// a sender given by the surrounding process replaces it.
func TestWakeUpsAreSent(t *testing.T) {
	vapid := keyringtest.Ring(t, nil).VAPIDs
	wake := func(c config.Config, given map[message.Channel]message.Sender) (offered bool, err error) {
		t.Helper()
		all, err := adapters.Senders(c.Resolved(), given, vapid)
		storetest.Must(t, err)
		d := dispatch.New(dispatch.Options{Senders: all})
		if s := all[message.Push]; s != nil {
			err = s.Send(context.Background(), "id", message.Rendered{Channel: message.Push, Text: `{"challengeId":"c"}`,
				To: `{"type":"webhook","url":"http://127.0.0.1:1/"}`})
		}
		return d.Offers(message.Push), err
	}
	c := config.Default()
	c.Push.WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	if offered, err := wake(c, nil); !offered || !message.IsPermanent(err) || !strings.Contains(err.Error(), "not https") {
		t.Errorf("in production: offered %v, %v", offered, err)
	}
	if offered, err := wake(c, map[message.Channel]message.Sender{message.Push: dispatch.Local{}}); !offered ||
		err != nil {
		t.Errorf("with a sender of the process: offered %v, %v", offered, err)
	}
	dev := c
	dev.Dev = true
	if offered, err := wake(dev, nil); !offered || err == nil || message.IsPermanent(err) ||
		!strings.Contains(err.Error(), "connection failed") {
		t.Errorf("in development the service was not called: offered %v, %v", offered, err)
	}
	c.Push.Enabled = false
	if offered, err := wake(c, nil); offered || err != nil {
		t.Errorf("switched off: offered %v, %v", offered, err)
	}
	if _, err := push.PublicKey(vapid()[0]); err != nil {
		t.Error(err)
	}
	c.Push.Enabled, c.Push.CAFile = true, "no/such/file"
	if _, err := adapters.Senders(c, nil, vapid); err == nil {
		t.Error("a file that is not there was accepted")
	}
}

// A kind of second factor whose codes are sent has an adapter, and every kind has a name on the page of a challenge
// (docs/add-a-method.md).
func TestEveryKindIsComplete(t *testing.T) {
	page, _, ok := web.Page("texts.js")
	if !ok {
		t.Fatal("no texts of the page")
	}
	for _, n := range challenge.Names() {
		if got := strings.Count(string(page), "method"+string(n)+": '"); got != 3 {
			t.Errorf("%s has a name in %d languages of web/static/texts.js, want 3", n, got)
		}
		if !n.Sent() {
			continue
		}
		c := config.Default()
		if adapters.Offers(c, n.Channel()) {
			t.Errorf("%s is offered without a setting", n)
		}
		c.Dev = true
		all, err := adapters.Senders(c.Resolved(), nil, keyringtest.Ring(t, nil).VAPIDs)
		if err != nil || all[n.Channel()] == nil || !adapters.Offers(c, n.Channel()) {
			t.Errorf("%s has no channel in development mode: %v", n, err)
		}
	}
}
