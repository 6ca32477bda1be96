package broadcast

import (
	"context"

	"castellan/domain/delivery/message"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/job"
)

// Post sends one message of a job, at once and at most once.
type Post struct {
	Senders map[message.Channel]message.Sender
	// Keep returns the writes that show a sent message in the outbox of development mode; nil: not shown.
	Keep func(userID string, m message.Rendered) []commit.Write
}

// Send sends a message. Its errors are those of job.Items.Send: a rejected message has failed, and a message that the
// receiver may have is unsure. If the receiver was not reached, the item is retried.
func (p Post) Send(ctx context.Context, key, userID string, m message.Rendered) (kept []commit.Write, err error) {
	sender := p.Senders[m.Channel]
	if sender == nil {
		return nil, fault.New(fault.Unavailable, "the channel %s is not configured", m.Channel)
	}
	switch err = sender.Send(ctx, key, m); {
	case err == nil && p.Keep != nil:
		return p.Keep(userID, m), nil
	case err == nil:
		return nil, nil
	case message.IsPermanent(err):
		return nil, fault.New(fault.InvalidState, "refused by the server (%s)", m.Channel)
	case message.IsUnsent(err):
		return nil, job.Later(fault.New(fault.Unavailable, "the server does not accept messages (%s)", m.Channel))
	}
	return nil, job.Unsure(fault.New(fault.Unavailable, "the server did not answer (%s)", m.Channel))
}
