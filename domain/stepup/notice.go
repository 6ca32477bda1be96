package stepup

import (
	"time"

	"castellan/domain/challenge"
	"castellan/domain/commit"
	"castellan/domain/id"
	"castellan/domain/message"
	"castellan/domain/outbox"
)

// noticeLife is how long a notice that cannot be delivered is tried.
const noticeLife = 24 * time.Hour

// Notice is the message that tells the owner of an account what happened to
// it: the write commits with what it tells of, and is delivered by whichever
// node claims it first. It goes to the mail address, else to the phone; there
// is nothing to commit when neither can be reached. Caps do not hold it back.
func (s *Service) Notice(to challenge.Account, template string, v message.Values) []commit.Write {
	now := s.Now()
	for _, n := range []challenge.Name{challenge.MAIL, challenge.SMS} {
		ch := message.Channel(n)
		if destination(to, n) == "" || !s.Dispatch.Offers(ch) {
			continue
		}
		m := outbox.Message{ID: id.New(now), UserID: to.UserID, Channel: ch, Destination: s.destination(destination(to, n)), Proven: true, State: outbox.Queued,
			CreatedAt: now, ExpiresAt: now.Add(noticeLife), LeaseUntil: now}
		if n == challenge.SMS {
			m.Dial = s.dial(to.Phone)
		}
		m.MethodID = m.ID // a notice has no challenge: its id alone tells it from others
		plain, _ := s.Book.Render(ch, template, s.language("", to.Language), destination(to, n), v).AppendBinary(nil)
		m.Payload = s.Ring.Seal(plain, challenge.PayloadData("", m.MethodID, 0))
		return []commit.Write{outbox.Add{Message: m}}
	}
	return nil
}
