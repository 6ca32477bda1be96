// Package broadcast sends messages to many users: notifications by topic and SMS to customers (section 4.10 of the
// interface; decisions D-ADM-04, D-ADM-05). Each is a job whose items are the recipients; mail and SMS are sent at most
// once.
//
// The one idea: a request gets its response when its job is durable, and the job reads the list of recipients, once.
//
// Start reading at Service.Notify; outcome.go defines the outcome of a recipient.
package broadcast

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"castellan/domain/account/user"
	"castellan/domain/delivery/message"
	"castellan/domain/delivery/notification"
	"castellan/domain/kit/admin"
	"castellan/domain/kit/audit"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
	"castellan/domain/kit/parameter"
	"castellan/domain/proof/device"
)

// The kinds of jobs.
const (
	NotificationKind = "send-notification"
	SMSKind          = "send-bulk-sms"
)

// MaxRecipients is the maximum number of ids in one request.
const MaxRecipients = 10_000

// Turkey is the only country code to which SMS are sent in bulk (section 4.10 of the interface).
const Turkey = "90"

// Service sends messages to many users. It is safe for concurrent use.
type Service struct {
	Users interface {
		Get(ctx context.Context, id string) (user.User, error)
		user.Audiences
	}
	Devices interface {
		List(ctx context.Context, userID string) ([]device.Device, error)
	}
	Jobs       *job.Service
	Changes    admin.Changes // without a topic: no node caches broadcasts
	Parameters *parameter.Cache
	Post       Post
	// Open opens the sealed push target of a device; it is Open of the keyring.
	Open func(sealed, ad []byte) ([]byte, error)
	// MaySend checks whether a caller may send to a user (D-AUTH-03). It is called for each recipient before sending.
	MaySend func(caller, userID string) error
}

// Started describes a started job.
type Started struct {
	JobID   string
	Count   int      // recipients
	Unknown []string // ids without an account
	LeftOut LeftOut  // for an SMS
}

// LeftOut counts the named users who get no SMS, by reason. If several reasons apply, the first counts.
type LeftOut struct{ Unknown, Filter, NoTurkishNumber, CampaignsOff int }

// Notice is a notification for some users. Its topic determines the channels (parameter.Topics).
type Notice struct {
	notification.Message
	UserIDs  []string
	System   string // operating system of the devices to wake; "" for all
	Language string // of the text; "" if not stated
}

// sending holds the parameters of a job. IDs are sorted.
type sending struct {
	IDs      []string             `json:"ids,omitempty"`
	All      *user.Audience       `json:"all,omitempty"` // instead of IDs
	Message  notification.Message `json:"message"`
	Channels []string             `json:"channels,omitempty"`
	System   string               `json:"system,omitempty"`
	Language string               `json:"language,omitempty"`
}

// Notify starts the job that delivers a notice. INVALID_FIELD.
func (s *Service) Notify(ctx context.Context, by audit.By, n Notice) (out Started, err error) {
	if err := n.Check(); err != nil {
		return out, err
	}
	ids := slices.Compact(slices.Sorted(slices.Values(n.UserIDs)))
	if len(ids) > MaxRecipients {
		return out, fault.Invalid("memberId", "has too many elements, at most %d", MaxRecipients)
	}
	known, err := s.existingUsers(ctx, user.Audience{IDs: ids})
	if err != nil {
		return out, err
	}
	for _, id := range ids {
		if _, found := slices.BinarySearch(known, id); !found {
			out.Unknown = append(out.Unknown, id)
		}
	}
	out.Count = len(known)
	p := sending{IDs: known, Message: n.Message, Channels: parameter.Topics.In(s.Parameters.Set()).Of(n.Topic),
		System: n.System, Language: n.Language}
	out.JobID, err = s.start(ctx, by, NotificationKind, "NOTIFICATION_SEND",
		fmt.Sprintf("topic %s, %d recipients", n.Topic, out.Count), p)
	return out, err
}

// SMS is a text for many users.
type SMS struct {
	UserIDs []string // nil: all users
	Text    string
	Filter  user.Audience // narrows both
}

// Text starts the job that sends an SMS to the users with a Turkish number. INVALID_FIELD.
func (s *Service) Text(ctx context.Context, by audit.By, m SMS) (out Started, err error) {
	if err := s.judge(m.Filter); err != nil {
		return out, err
	}
	to := m.Filter
	to.Dial, to.SMS = Turkey, true
	p := sending{Message: notification.Message{Body: m.Text}}
	if m.UserIDs == nil {
		p.All = &to
		out.Count, out.LeftOut, err = s.countSMS(ctx, to, false)
	} else {
		if to.IDs = slices.Compact(slices.Sorted(slices.Values(m.UserIDs))); len(to.IDs) > MaxRecipients {
			return out, fault.Invalid("userIds", "has too many elements, at most %d", MaxRecipients)
		}
		if _, out.LeftOut, err = s.countSMS(ctx, to, true); err == nil {
			p.IDs, err = s.existingUsers(ctx, to)
		}
		out.Count = len(p.IDs)
	}
	if err != nil {
		return out, err
	}
	out.JobID, err = s.start(ctx, by, SMSKind, "BULK_SMS_SEND", fmt.Sprintf("%d recipients", out.Count), p)
	return out, err
}

// judge rejects a filter with a value that no account can have (D-GEN-17).
func (s *Service) judge(a user.Audience) error {
	set := s.Parameters.Set()
	kyc := parameter.List{Values: []string{user.WaitingApproval, user.ManuelApproved, user.OCROrNFCApproved,
		user.Rejected}}
	for _, f := range []struct {
		values []string
		list   parameter.List
	}{{a.Statuses, parameter.UserStatus.In(set)}, {a.Types, parameter.UserType.In(set)}, {a.KYC, kyc}} {
		for _, v := range f.values {
			if !f.list.Allows(v) {
				return fault.Invalid("filter", "has a status, type or kycConfirm that does not exist")
			}
		}
	}
	return nil
}

// knownAtOnce is how many ids are looked up in one statement.
const knownAtOnce = 500

// existingUsers returns the sorted ids of the audience that have an account.
func (s *Service) existingUsers(ctx context.Context, a user.Audience) (ids []string, err error) {
	for some := range slices.Chunk(a.IDs, knownAtOnce) {
		a.IDs = some
		found, err := s.Users.Audience(ctx, a, "", 0)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

// countSMS counts the members of an audience that get an SMS, and the others by reason. named: the audience is exactly
// its ids, even if there are none.
func (s *Service) countSMS(ctx context.Context, a user.Audience, named bool) (recipients int, out LeftOut, err error) {
	parts := slices.Collect(slices.Chunk(a.IDs, knownAtOnce))
	if !named {
		parts = [][]string{nil}
	}
	for _, a.IDs = range parts {
		n, err := s.Users.CountSMS(ctx, a)
		if err != nil {
			return 0, LeftOut{}, err
		}
		recipients += n.Recipients
		if named {
			out.Unknown += len(a.IDs) - n.Known()
		}
		out.Filter += n.Filtered
		out.NoTurkishNumber += n.NoNumber
		out.CampaignsOff += n.NoCampaign
	}
	return recipients, out, nil
}

func (s *Service) start(ctx context.Context, by audit.By, kind, action, detail string,
	p sending) (id string, err error) {
	err = s.Changes.Do(ctx, by, action, func(ctx context.Context) (admin.Done, error) {
		j, _, err := s.Jobs.Start(ctx, by, job.Request{Kind: kind, Params: p})
		id = j.ID
		return admin.Done{Target: j.ID, Detail: detail}, err
	})
	return id, err
}

func (s *Service) Kinds() []job.Kind {
	return []job.Kind{
		{Name: NotificationKind, About: title,
			Items: &job.Items{Snapshot: s.recipients, Send: s.notify, Parallel: parallel}},
		{Name: SMSKind, About: title, Items: &job.Items{Snapshot: s.recipients, Send: s.text, Parallel: parallel}},
	}
}

// title returns the title of the message of a job, or its text if it has no title.
func title(j job.Job) string {
	var p struct{ Message notification.Message }
	if j.Into(&p) != nil {
		return ""
	}
	return cmp.Or(p.Message.Title, p.Message.Body)
}

// parallel is how many recipients are served in parallel.
const parallel = 4

// recipients returns a page of the recipients of a job.
func (s *Service) recipients(ctx context.Context, j job.Job, after string, limit int) ([]string, error) {
	var p sending
	if err := j.Into(&p); err != nil {
		return nil, err
	}
	if p.All != nil {
		return s.Users.Audience(ctx, *p.All, after, limit)
	}
	from, found := slices.BinarySearch(p.IDs, after)
	if found {
		from++
	}
	return p.IDs[from:min(from+limit, len(p.IDs))], nil
}

// recipient returns the message of a job and a user to whom its actor may send it. An unknown user is skipped.
func (s *Service) recipient(ctx context.Context, j job.Job, userID string) (p sending, u user.User, err error) {
	if err = j.Into(&p); err != nil {
		return p, u, err
	}
	if err = s.MaySend(j.ActorID, userID); err != nil {
		return p, u, err
	}
	u, err = s.Users.Get(ctx, userID)
	switch {
	case fault.CodeOf(err) == fault.RecordNotFound:
		err = job.Skip
	case err != nil:
		err = job.Later(err)
	}
	return p, u, err
}

// text sends the SMS of a job to one user.
func (s *Service) text(ctx context.Context, j job.Job, userID string) ([]commit.Write, error) {
	p, u, err := s.recipient(ctx, j, userID)
	if err != nil {
		return nil, err
	}
	if !u.TakesSMS(Turkey) {
		return nil, job.Skip
	}
	return s.Post.Send(ctx, j.ID+"-"+userID, u.ID,
		message.Rendered{Channel: message.SMS, To: u.Phone, Text: p.Message.Body, Language: u.Language})
}
