package stepup

import (
	"maps"
	"strings"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/client"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/id"
)

// noticeLife is how long the delivery of a notice is retried.
const noticeLife = 24 * time.Hour

// Notice returns the writes that notify the owner of an account of a change (D-EXT-07). They commit with the change,
// once for each change, and the node that first claims the message delivers it. The notice goes by mail. A kind that
// is sent each time goes by SMS if the account has no address. Notice returns no writes without a channel or for a
// kind that is switched off. No cap holds a notice back, because its causes are bounded themselves; but the caps of
// later messages count it.
//
// time and ip are filled in. message.Kind documents the other values of a kind, and how to add a kind.
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
	for _, n := range []challenge.Name{challenge.MAIL, challenge.SMS} {
		row, ok := s.noticeBy(n, to, string(k), values, ip)
		switch {
		case ok && once > 0:
			return []commit.Write{outbox.NewOnce(row, string(k), once)}
		case ok:
			return []commit.Write{outbox.Add{Message: row}}
		}
	}
	return nil
}

// noticeTime is the format of an instant in every language.
const noticeTime = "2006-01-02 15:04 UTC"

// Guessed is challenge.Guessed for the owner of a challenge. A decoy notifies no user: the message is created as
// discarded, and costs the same.
func (s *Messenger) Guessed(r challenge.Rules) func(c challenge.Challenge, to challenge.Account, n challenge.Name,
	row int, ip string) []commit.Write {
	return func(c challenge.Challenge, to challenge.Account, n challenge.Name, row int, ip string) []commit.Write {
		return told(to, to.UserID != "", c.Owner(), func(to challenge.Account) []commit.Write {
			return challenge.Guessed(s, to, c.Flow, n, row, r, ip)
		})
	}
}

// told returns the notice of an account. Without a known account it is that of a stranger: those that are sent at most
// once per period are discarded, under subject.
func told(to challenge.Account, known bool, subject string,
	notice func(to challenge.Account) []commit.Write) []commit.Write {
	if known {
		return notice(to)
	}
	to = stranger("")
	to.UserID = subject
	writes := notice(to)
	for i, w := range writes {
		if once, is := w.(outbox.AddOnce); is {
			once.State = outbox.Discarded
			writes[i] = once
		}
	}
	return writes
}

// Applied returns the write that notifies the owner of an account, once an hour, of an application for another
// account with its phone number or mail address. If to has no user or no address, the message is created as
// discarded, under subject, and costs the same.
func (s *Messenger) Applied(to challenge.Account, subject, ip string) []commit.Write {
	return told(to, to.UserID != "" && to.Mail != "", subject, func(to challenge.Account) []commit.Write {
		return s.Notice(to, message.AppliedAgain, nil, ip)
	})
}

// noticeBy is a notice on one channel, if the account has it and the installation offers it.
func (s *Messenger) noticeBy(n challenge.Name, to challenge.Account, template string, v message.Values,
	ip string) (row outbox.Message, ok bool) {
	ch := n.Channel()
	if !to.Owns(n) || !s.Dispatch.Offers(ch) {
		return row, false
	}
	now, where := s.Now(), n.Address(to)
	noticeID := id.New(now)
	text := s.Book.Render(ch, template, s.language("", to.Language), where, v)
	row = outbox.Message{ID: noticeID, MethodID: noticeID, UserID: to.UserID, Channel: ch,
		Destination: s.destination(where), Prefix: client.PrefixOf(ip),
		Proven: true, Uncounted: s.Config.uncapped(), State: outbox.Queued, CreatedAt: now, ExpiresAt: now.Add(noticeLife),
		LeaseUntil: now}
	if where == to.Phone {
		row.Dial = s.dial(where)
	}
	// The payload has no challenge to be bound to, so it is bound to the id of the notice instead of a method.
	plain, _ := text.AppendBinary(nil) // never fails
	row.Payload = s.Ring.Seal(plain, challenge.PayloadData("", noticeID, 0))
	return row, true
}

// Notify returns the writes that notify an account of a decision: a notification inside the account, and a message on
// each of the account's channels. The writes commit with the decision; the node that first claims a message delivers
// it.
func (s *Messenger) Notify(to challenge.Account, topic, template string, v message.Values, ip string,
	on ...challenge.Name) []commit.Write {
	inside := s.Book.Render(message.MAIL, template, s.language("", to.Language), "", v)
	body := strings.TrimSpace(strings.TrimPrefix(inside.Text, inside.Subject))
	writes := []commit.Write{notification.Add{Notification: notification.New(s.Now(), to.UserID,
		notification.Message{Topic: topic, Title: inside.Subject, Body: body})}}
	for _, n := range on {
		if row, ok := s.noticeBy(n, to, template, v, ip); ok {
			writes = append(writes, outbox.Add{Message: row})
		}
	}
	return writes
}
