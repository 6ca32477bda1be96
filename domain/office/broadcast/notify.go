package broadcast

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/parameter"
	"castellan/domain/proof/device"
)

// campaigns is the topic for which the account defines the permitted channels.
const campaigns = "campaign"

// notify delivers a notice to one user. The notification in the account commits with the outcome. The mail is sent
// first: if it is retried, nothing else has happened. Then the reachable devices are woken.
func (s *Service) notify(ctx context.Context, j job.Job, userID string) ([]commit.Write, error) {
	p, u, err := s.recipient(ctx, j, userID)
	if err != nil {
		return nil, err
	}
	if !u.Active() {
		return nil, job.Skip
	}
	var writes []commit.Write
	served := slices.Contains(p.Channels, parameter.InApp)
	if served {
		writes = append(writes, notification.Add{Notification: notification.New(s.Changes.Now(), u.ID, p.Message)})
	}
	campaign := p.Message.Topic == campaigns
	if slices.Contains(p.Channels, parameter.Mail) && u.Email != "" && (!campaign || u.Campaigns.Mail) {
		var kept []commit.Write
		if kept, err = s.Post.Send(ctx, j.ID+"-"+u.ID, u.ID, mailOf(p, u)); job.IsLater(err) {
			return nil, err
		}
		writes, served = append(writes, kept...), true
	}
	if slices.Contains(p.Channels, parameter.Push) && (!campaign || u.Campaigns.Push) {
		woken, failed := s.wake(ctx, j, p, u)
		served = served || woken > 0
		if err == nil && failed > 0 && woken == 0 {
			err = fault.New(fault.Unavailable, "no device could be notified")
		}
	}
	if !served && err == nil {
		err = job.Skip
	}
	return writes, err
}

func mailOf(p sending, u user.User) message.Rendered {
	return message.Rendered{Channel: message.MAIL, To: u.Email, Subject: Line(p.Message.Title), Text: p.Message.Body,
		Language: cmp.Or(p.Language, u.Language)}
}

// Line returns a text in a form that fits into a mail header.
func Line(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// maxPushBytes is the maximum size of a push message.
const maxPushBytes = 3000

// pushText returns a notice in the form for a device. A text that is too long is truncated; the account has the full
// text.
func pushText(m notification.Message) string {
	for {
		text, _ := json.Marshal(map[string]any{"notice": m}) // only strings: no error
		body := []rune(m.Body)
		switch {
		case len(text) <= maxPushBytes:
			return string(text)
		case len(body) > 100:
			m.Body = string(body[:len(body)*2/3]) + "…"
		default:
			m.ImageURL, m.ClickAction, m.Topic = "", "", ""
		}
	}
}

// wake sends the notice to the devices of a user and returns how many were reached and how many were not.
func (s *Service) wake(ctx context.Context, j job.Job, p sending, u user.User) (woken, failed int) {
	devices, err := s.Devices.List(ctx, u.ID)
	if err != nil {
		return 0, 1
	}
	text := pushText(p.Message)
	for _, d := range devices {
		if d.Target == nil || d.Status != device.Active || p.System != "" && !strings.EqualFold(p.System, d.Platform) {
			continue
		}
		target, err := s.Open(d.Target, device.TargetData(d.UserID, d.ID))
		if err == nil {
			_, err = s.Post.Send(ctx, j.ID+"-"+d.ID, u.ID,
				message.Rendered{Channel: message.Push, To: string(target), Text: text, Language: p.Language})
		}
		if err == nil {
			woken++
		} else {
			failed++
		}
	}
	return woken, failed
}
