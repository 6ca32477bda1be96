package stepup

import (
	"maps"
	"strings"
	"time"

	"castellan/domain/access/challenge"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/delivery/outbox"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
)

// noticeLife is how long delivery of a notice is tried.
const noticeLife = 24 * time.Hour

// Notice makes the writes that tell the owner of an account of something that
// happened to it (D-EXT-07). They commit with what the notice is about, once for each
// change, and the node that claims the message first delivers it. It goes by mail, and
// a kind that is told each time by SMS where there is no address. There are no writes
// without a channel or for a kind that is switched off. No cap holds a notice back,
// for what it tells of is bounded itself; but the caps of later messages count it.
//
// time and ip are filled in; message.Kind says what else a kind needs, and how a kind
// is added.
func (s *Messenger) Notice(to challenge.Account, k message.Kind, v message.Values, ip string) []commit.Write {
	if s.Config.Silent[k] {
		return nil
	}
	values := message.Values{"time": s.Now().UTC().Format(noticeTime), "ip": ip}
	maps.Copy(values, v)
	once := k.Once()
	if once > 0 {
		to.Phone = "" // a stranger can cause it, and an SMS costs money
	}
	row, _, ok := s.notice(to, string(k), values, ip)
	if !ok {
		return nil
	}
	row.LeaseUntil = row.CreatedAt
	if once > 0 {
		return []commit.Write{outbox.NewOnce(row, string(k), once)}
	}
	return []commit.Write{outbox.Add{Message: row}}
}

// noticeTime says when something happened, alike in every language.
const noticeTime = "2006-01-02 15:04 UTC"

// Guessed is challenge.Guessed for the owner of a challenge. Of a decoy nobody is told:
// the message is born discarded, and costs what another does.
func (s *Messenger) Guessed(r challenge.Rules) func(c challenge.Challenge, to challenge.Account, n challenge.Name,
	row int, ip string) []commit.Write {
	return func(c challenge.Challenge, to challenge.Account, n challenge.Name, row int, ip string) []commit.Write {
		known := to.UserID != ""
		if !known {
			to = stranger("")
			to.UserID = c.Owner()
		}
		writes := challenge.Guessed(s, to, c.Flow, n, row, r, ip)
		if !known {
			discard(writes)
		}
		return writes
	}
}

// discard makes notices that are told at most once in a time born discarded.
func discard(writes []commit.Write) {
	for i, w := range writes {
		if once, is := w.(outbox.AddOnce); is {
			once.State = outbox.Discarded
			writes[i] = once
		}
	}
}

// Applied makes the write that tells the owner of an account, once an hour, that its phone
// number or mail address was used to apply for another account. Where to has no user or no
// address the message is born discarded, under subject, and costs what another does.
func (s *Messenger) Applied(to challenge.Account, subject, ip string) []commit.Write {
	known := to.UserID != "" && to.Mail != ""
	if !known {
		to = stranger("")
		to.UserID = subject
	}
	writes := s.Notice(to, message.AppliedAgain, nil, ip)
	if !known {
		discard(writes)
	}
	return writes
}

func (s *Messenger) notice(to challenge.Account, template string, v message.Values, ip string) (row outbox.Message,
	text message.Rendered, ok bool) {
	for _, n := range []challenge.Name{challenge.MAIL, challenge.SMS} {
		if row, text, ok = s.noticeBy(n, to, template, v, ip); ok {
			break
		}
	}
	return row, text, ok
}

// noticeBy is a notice on one channel, where the account has it and it is offered.
func (s *Messenger) noticeBy(n challenge.Name, to challenge.Account, template string, v message.Values,
	ip string) (row outbox.Message, text message.Rendered, ok bool) {
	ch := message.Channel(n)
	if !to.Owns(n) || !s.Dispatch.Offers(ch) {
		return row, text, false
	}
	now, where := s.Now(), destination(to, n)
	noticeID := id.New(now)
	text = s.Book.Render(ch, template, s.language("", to.Language), where, v)
	row = outbox.Message{ID: noticeID, MethodID: noticeID, UserID: to.UserID, Channel: ch,
		Destination: s.destination(where), Prefix: prefix(ip),
		Proven: true, Uncounted: s.Config.uncapped(), State: outbox.Queued, CreatedAt: now, ExpiresAt: now.Add(noticeLife)}
	if n == challenge.SMS {
		row.Dial = s.dial(where)
	}
	// There is no challenge to bind the payload to: the notice's own id
	// stands where a method's would.
	plain, _ := text.AppendBinary(nil) // it has no error to give
	row.Payload = s.Ring.Seal(plain, challenge.PayloadData("", noticeID, 0))
	return row, text, true
}

// Tell makes what tells an account of a decision on it: a notification inside the
// account, and a message on each of the channels that the account has. The writes
// commit with the decision; the node that claims a message first delivers it.
func (s *Messenger) Tell(to challenge.Account, topic, template string, v message.Values, ip string,
	on ...challenge.Name) []commit.Write {
	inside := s.Book.Render(message.MAIL, template, s.language("", to.Language), "", v)
	body := strings.TrimSpace(strings.TrimPrefix(inside.Text, inside.Subject))
	writes := []commit.Write{notification.Add{Notification: notification.New(s.Now(), to.UserID,
		notification.Message{Topic: topic, Title: inside.Subject, Body: body})}}
	for _, n := range on {
		if row, _, ok := s.noticeBy(n, to, template, v, ip); ok {
			row.LeaseUntil = row.CreatedAt
			writes = append(writes, outbox.Add{Message: row})
		}
	}
	return writes
}
