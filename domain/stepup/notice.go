package stepup

import (
	"time"

	"castellan/domain/challenge"
	"castellan/domain/commit"
	"castellan/domain/id"
	"castellan/domain/message"
	"castellan/domain/outbox"
)

// noticeLife is how long delivery of a notice is tried.
const noticeLife = 24 * time.Hour

// Notice makes a message that tells an account of something that happened to
// it, outside of any challenge: by mail where the account has an address, else
// by SMS. The writes commit with what the notice is about; afterwards committed
// hands the message over for delivery. Without a channel there are no writes.
// No cap holds a notice back, for what it tells of is bounded itself; but the
// caps of later messages count it.
func (s *Service) Notice(to challenge.Account, template string, v message.Values, ip string) (writes []commit.Write, committed func()) {
	var name challenge.Name
	for _, n := range []challenge.Name{challenge.MAIL, challenge.SMS} {
		if to.Owns(n) && s.Dispatch.Offers(message.Channel(n)) {
			name = n
			break
		}
	}
	if name == "" {
		return nil, func() {}
	}
	now := s.Now()
	noticeID := id.New(now)
	where := destination(to, name)
	text := s.Book.Render(message.Channel(name), template, s.language("", to.Language), where, v)
	plain, _ := text.AppendBinary(nil) // it has no error to give
	row := outbox.Message{ID: noticeID, MethodID: noticeID, UserID: to.UserID, Channel: message.Channel(name), Destination: s.destination(where),
		Prefix: prefix(ip), Proven: true, State: outbox.Queued, CreatedAt: now, ExpiresAt: now.Add(noticeLife), LeaseUntil: now.Add(s.Config.Lease)}
	if name == challenge.SMS {
		row.Dial = s.dial(where)
	}
	// There is no challenge to bind the payload to: the notice's own id stands
	// where a method's would.
	row.Payload = s.Ring.Seal(plain, challenge.PayloadData("", noticeID, 0))
	return []commit.Write{outbox.Add{Message: row}}, func() { s.Dispatch.Deliver(row, text) }
}
