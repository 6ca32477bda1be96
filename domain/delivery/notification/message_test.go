package notification_test

import (
	"strings"
	"testing"

	"castellan/domain/delivery/notification"
	"castellan/domain/kit/storetest"
)

// Each text of a message has a bound in characters. The error names every longer one.
func TestBoundsOfMessages(t *testing.T) {
	message := func(more int) notification.Message {
		text := func(n int) string { return strings.Repeat("ğ", n+more) }
		return notification.Message{Topic: text(64), Title: text(200), Body: text(4000), ImageURL: text(1024),
			ClickAction: text(1024)}
	}
	storetest.Must(t, message(0).Check()) // the longest texts
	storetest.WantsFields(t, message(1).Check(), "topic title body imageUrl clickActionType")
	for i, field := range []string{"topic", "title", "body", "imageUrl", "clickActionType"} {
		m, long := message(0), message(1)
		*[]*string{&m.Topic, &m.Title, &m.Body, &m.ImageURL, &m.ClickAction}[i] =
			[]string{long.Topic, long.Title, long.Body, long.ImageURL, long.ClickAction}[i]
		storetest.WantsFields(t, m.Check(), field)
	}
}
