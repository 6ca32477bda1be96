package gateway

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"castellan/domain/factor/challenge"
	"castellan/domain/kit/commit"
	"castellan/domain/kit/fault"
)

// leastLeft is how long all methods of an open challenge must still be valid, so that it answers another request.
const leastLeft = 10 * time.Second

// maxFenced bounds how often a start is decided again.
const maxFenced = 3

// challenge returns the open challenge of an equal request, or starts one.
func (g *Guard) challenge(ctx context.Context, action string, user User, from challenge.Starter, command []byte,
	rows []challenge.Detail) (started challenge.Started, err error) {
	open, err := g.open(ctx, action, user.ID, command)
	if err != nil {
		return started, err
	}
	if open != "" {
		started, err = g.Engine.Again(ctx, open)
		if fault.CodeOf(err) != fault.ChallengeNotFound { // it has not ended since
			return started, err
		}
	}
	err = commit.Retry(maxFenced, func() error {
		account, err := g.Account(ctx, user.ID)
		if err != nil {
			return err
		}
		started, err = g.Engine.Start(ctx, challenge.StartRequest{Action: action, Account: account, Starter: from,
			Proven: true, Command: command, Service: challenge.Gateway, Details: rows, Brief: valueSummary(rows)})
		return err
	})
	return started, err
}

// valueSummary returns the rows for the messages with codes, such as "Order 7, Amount 5".
func valueSummary(rows []challenge.Detail) string {
	texts := make([]string, len(rows))
	for i, v := range rows {
		texts[i] = strings.TrimSpace(v.Label + " " + v.Value)
	}
	return strings.Join(texts, ", ")
}

// open returns the id of the open challenge of a request with the same command, or "". So a client that retries does
// not fill the challenges of its user. A challenge with a wrong value, or with a method that ends soon, is passed over.
func (g *Guard) open(ctx context.Context, action, userID string, command []byte) (id string, err error) {
	now := g.Now()
	pending, err := g.Challenges.Pending(ctx, userID, now)
	for _, p := range pending {
		if p.Service != challenge.Gateway || p.Action != action || !answerable(p.Challenge, now.Add(leastLeft)) {
			continue
		}
		plain, err := g.Open(p.Command, challenge.CommandData(p.ID))
		if err != nil {
			return "", fmt.Errorf("guard: command: %w", err)
		}
		if bytes.Equal(plain, command) {
			return p.ID, nil
		}
	}
	return "", err
}

// answerable reports whether no method got a wrong value, and each is complete or valid until an instant.
func answerable(c challenge.Challenge, until time.Time) bool {
	for _, m := range c.Methods {
		if m.Order == 0 && (m.Wrong > 0 || m.ExpiresAt <= until.UnixMilli()) {
			return false
		}
	}
	return true
}
