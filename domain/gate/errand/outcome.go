package errand

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"castellan/domain/delivery/message"
	"castellan/domain/delivery/outbox"
	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
	"castellan/domain/kit/id"
)

// Action is the one action behind the challenges of services. Its only effect is the outcome of the errand and the
// message to its service, in the commit of the challenge's outcome.
func (s *Service) Action() challenge.Action {
	return challenge.Action{Code: challenge.ServiceAction, Flow: challenge.FlowSession,
		Describe: func(text []byte) []challenge.Detail { return readCommand(text).Rows },
		Brief:    func(text []byte) string { return readCommand(text).Title },
		Build:    s.complete, Ended: s.ended}
}

// readCommand reads a command for its approver. One that cannot be read has nothing to show.
func readCommand(text []byte) (c command) {
	if json.Unmarshal(text, &c) != nil {
		return command{}
	}
	return c
}

// complete settles the errand of a completed challenge.
func (s *Service) complete(_ context.Context,
	x challenge.Execution) (r challenge.Result, ws []commit.Write, err error) {
	var c command
	if err := json.Unmarshal(x.Command, &c); err != nil {
		return r, nil, fmt.Errorf("errand: command: %w", err)
	}
	e := Errand{ID: x.Challenge.ID, Service: x.Challenge.Service, Reference: c.Reference, Status: Completed,
		SettledAt: x.Now, Intent: x.Challenge.IntentDigest, Methods: []string{}}
	for _, m := range x.Challenge.CompletedMethods() {
		e.Methods = append(e.Methods, string(m.Name))
	}
	if c.Payload != nil {
		e.Payload = s.Seals.Seal(c.Payload, payloadData(e.ID))
	}
	ws, err = s.settle(e)
	if err != nil {
		return r, nil, err
	}
	r.Success = true
	r.Data, err = json.Marshal(map[string]string{"reference": c.Reference})
	return r, ws, err
}

// ended settles the errand of a challenge that ended without success.
func (s *Service) ended(ctx context.Context, c challenge.Challenge, now time.Time) ([]commit.Write, error) {
	e, err := s.Store.Get(ctx, c.ID)
	if fault.CodeOf(err) == fault.RecordNotFound {
		return nil, nil
	}
	if err != nil || e.Status != Pending {
		return nil, err
	}
	e.Status, e.SettledAt, e.Methods = Failed, now, []string{}
	if c.State == challenge.Denied {
		e.Status = Denied
	}
	return s.settle(e)
}

// types are the types of messages by status.
var types = map[Status]string{Completed: "challenge.completed", Denied: "challenge.denied",
	Expired: "challenge.expired", Failed: "challenge.failed"}

// callbackLife is how long a message is retried.
const callbackLife = 3*24*time.Hour + 15*time.Minute

// settle returns the writes of an outcome: the errand, and the message to its service if the key has a callback.
func (s *Service) settle(e Errand) ([]commit.Write, error) {
	writes := []commit.Write{Settle{e}}
	key, _ := s.Key(e.Service)
	if key.Callback == "" {
		return writes, nil
	}
	body, err := json.Marshal(map[string]any{"type": types[e.Status], "aud": e.Service,
		"timestamp": e.SettledAt.UTC().Format("2006-01-02T15:04:05.000Z"),
		"data":      map[string]any{"id": e.ID, "reference": e.Reference, "status": e.Status}})
	if err != nil {
		return nil, fmt.Errorf("errand: message: %w", err)
	}
	m := outbox.Message{ID: id.New(e.SettledAt), ChallengeID: e.ID, MethodID: "outcome", Channel: message.Callback,
		Destination: []byte{}, Uncounted: true, State: outbox.Queued, CreatedAt: e.SettledAt,
		ExpiresAt: e.SettledAt.Add(callbackLife), LeaseUntil: e.SettledAt}
	plain, err := message.Rendered{Channel: message.Callback, To: key.Callback, Text: string(body)}.AppendBinary(nil)
	if err != nil {
		return nil, fmt.Errorf("errand: message: %w", err)
	}
	m.Payload = s.Seals.Seal(plain, challenge.PayloadData(m.ChallengeID, m.MethodID, m.Generation))
	return append(writes, outbox.Add{Message: m}), nil
}

const (
	overdueAfter = 5 * time.Second // more than clocks differ: the owner of a challenge refuses answers by then
	overdueMost  = 100             // errands settled at one time
)

// Sweep settles the errands of challenges that ended by time alone, or that a newer challenge superseded. Several nodes
// may sweep at once: each errand is settled once.
func (s *Service) Sweep(ctx context.Context) error {
	now := s.Now()
	due, err := s.Store.Overdue(ctx, now.Add(-overdueAfter), overdueMost)
	if err != nil || len(due) == 0 {
		return err
	}
	ids := make([]string, len(due))
	for i, e := range due {
		ids[i] = e.ID
	}
	states, err := s.Challenges.States(ctx, ids)
	if err != nil {
		return err
	}
	for _, e := range due {
		state, known := states[e.ID]
		switch {
		case !known, state == challenge.Pending:
			e.Status = Expired
		case state == challenge.Executing:
			continue
		case state == challenge.Denied:
			e.Status = Denied
		default: // Closed, or Done: a node of an older release did not know the action
			e.Status = Failed
		}
		e.SettledAt, e.Methods = now, []string{}
		writes, err := s.settle(e)
		if err == nil {
			err = s.Commit.Commit(ctx, writes...)
		}
		if err != nil && !errors.Is(err, commit.ErrFenced) {
			return err
		}
	}
	return nil
}
