package actors

import (
	"encoding/json"
	"errors"
	"time"

	"castellan/actors/pb"
	"castellan/domain/challenge"
	"castellan/domain/fault"
	"castellan/domain/message"
	"castellan/domain/outbox"
)

// overtaken is the code of a Refusal that never leaves the actors' client.
const overtaken = "OVERTAKEN"

func asFault(err error) *fault.Error {
	var f *fault.Error
	if errors.As(err, &f) {
		return f
	}
	return nil
}

func faultOf(r *pb.Refusal) *fault.Error {
	f := fault.New(fault.Code(r.Code), "%s", r.Message)
	f.Field, f.RetryAfter = r.Field, time.Duration(r.RetryAfterMs)*time.Millisecond
	if r.Field != "" {
		f.Fields = []fault.Problem{{Field: r.Field, Message: r.Message}}
	}
	if r.AttemptsLeft >= 0 {
		n := int(r.AttemptsLeft)
		f.AttemptsLeft = &n
	}
	return f
}

func prime(c challenge.Challenge) *pb.ChallengePrime {
	body, _ := json.Marshal(c.Body) // plain values always encode
	return &pb.ChallengePrime{UserId: c.UserID, Action: c.Action, Flow: string(c.Flow), CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt, Body: body}
}

func unprime(id string, p *pb.ChallengePrime) (challenge.Challenge, error) {
	c := challenge.Challenge{ID: id, UserID: p.UserId, Action: p.Action, Flow: challenge.Flow(p.Flow), CreatedAt: p.CreatedAt, ExpiresAt: p.ExpiresAt, Version: 1}
	return c, json.Unmarshal(p.Body, &c.Body)
}

func answerOf(m *pb.ChallengeComplete) challenge.Answer {
	a := challenge.Answer{MethodID: m.MethodId, Method: challenge.Name(m.Method), Verdict: challenge.Verdict(m.Verdict)}
	for _, d := range m.Digests {
		a.Digests = append(a.Digests, challenge.Digest{Key: d.Key, Sum: d.Sum})
	}
	if m.Claim != nil {
		a.Claim = &challenge.Claim{Key: m.Claim.Key, Value: m.Claim.Value}
	}
	return a
}

func view(c challenge.Challenge) *pb.ChallengeView {
	v := &pb.ChallengeView{Id: c.ID, Action: c.Action, Completed: c.Completed(), CreatedAt: c.CreatedAt, ExpiresAt: c.ExpiresAt}
	for _, m := range c.Methods {
		v.Methods = append(v.Methods, &pb.Method{Id: m.ID, Name: string(m.Name), Hint: m.Hint, LifetimeMs: m.LifetimeMs, RenewMs: m.RenewMs,
			ExpiresAt: m.ExpiresAt, Completed: m.Order > 0, Generation: int32(m.Generation)})
	}
	return v
}

func unview(v *pb.ChallengeView) challenge.Challenge {
	c := challenge.Challenge{ID: v.Id, Action: v.Action, CreatedAt: v.CreatedAt, ExpiresAt: v.ExpiresAt}
	if v.Completed {
		c.State = challenge.Executing
	}
	for _, m := range v.Methods {
		n := challenge.Method{ID: m.Id, Name: challenge.Name(m.Name), Hint: m.Hint, LifetimeMs: m.LifetimeMs, RenewMs: m.RenewMs,
			ExpiresAt: m.ExpiresAt, Generation: int(m.Generation)}
		if m.Completed {
			n.Order = 1
		}
		c.Methods = append(c.Methods, n)
	}
	return c
}

func outgoing(challengeID, methodID, userID string, m *pb.Outgoing) outbox.Message {
	return outbox.Message{ID: m.Id, ChallengeID: challengeID, MethodID: methodID, Generation: int(m.Generation), UserID: userID,
		Channel: message.Channel(m.Channel), Destination: m.Destination, Prefix: m.Prefix, Dial: m.Dial, Proven: m.Proven, State: outbox.State(m.State),
		CreatedAt: time.UnixMilli(m.CreatedAt), ExpiresAt: time.UnixMilli(m.ExpiresAt), LeaseUntil: time.UnixMilli(m.LeaseUntil), Payload: m.Payload}
}

func toOutgoing(m outbox.Message) *pb.Outgoing {
	return &pb.Outgoing{Id: m.ID, Channel: string(m.Channel), Destination: m.Destination, Prefix: m.Prefix, Dial: m.Dial, Proven: m.Proven, State: int32(m.State),
		CreatedAt: m.CreatedAt.UnixMilli(), ExpiresAt: m.ExpiresAt.UnixMilli(), LeaseUntil: m.LeaseUntil.UnixMilli(), Payload: m.Payload, Generation: int32(m.Generation)}
}
