package pb

import (
	"encoding/hex"
	"testing"

	"google.golang.org/protobuf/proto"

	"castellan/domain/kit/storetest"
)

// earlier are messages as encoded by the first version that formed clusters. During a rolling upgrade, nodes of two
// versions exchange messages: the meaning of these bytes must never change.
var earlier = []struct {
	bytes string
	m     proto.Message
}{
	{"0a0b4f54505f494e56414c494412016d1a0576616c756520e80728ffffffffffffffffff01",
		&Refusal{Code: "OTP_INVALID", Message: "m", Field: "value", RetryAfterMs: 1000, AttemptsLeft: -1}},
	{"0a017512054c4f47494e1a0166200128023a01634201734801500258036004680170017a1a0a01781201691a025452220274" +
		"722a016232016d3a01644201728201270a01691203534d531a01632201742a0168300538064007480852060a016b12010158" +
		"01620234328a010167",
		&ChallengePrime{UserId: "u", Action: "LOGIN", Flow: "f", CreatedAt: 1, ExpiresAt: 2, Command: []byte("c"),
			Subject: "s", Kind: 1, Required: 2, Cv: 3, Sv: 4, Proven: true, Commanded: true,
			Starter: &Starter{SessionId: "x", Ip: "i", Country: "TR", Language: "tr", Brand: "b", Model: "m", Description: "d",
				RequestId: "r"}, Methods: []*PrimedMethod{{Id: "i", Name: "SMS", Code: "c", Template: "t", Hint: "h", LifetimeMs: 5,
				RenewMs: 6, ExpiresAt: 7, MadeAt: 8, Digest: &Digest{Key: "k", Sum: []byte{1}}, Mandatory: true, Number: "42"}},
			Filter: "g"}},
	{"0a01691203534d531a070a016b120201022001280230033a01724201614a017552050a016b1009",
		&ChallengeComplete{MethodId: "i", Method: "SMS", Digests: []*Digest{{Key: "k", Sum: []byte{1, 2}}}, Verdict: 1,
			WaitMs: 2, Deadline: 3, RequestId: "r", Ip: "a", ActorId: "u", Claim: &Claim{Key: "k", Value: 9}}},
	{"0801",
		&ChallengeUser{Deadline: 1}},
	{"0a017510011a0166",
		&ChallengeUserIs{UserId: "u", KeepsFilter: true, Filter: "f"}},
	{"0a054c4f47494e10011a016f",
		&ChallengeAnswered{Action: "LOGIN", Final: true, Outcome: []byte("o")}},
	{"0a01691203534d531a030a016b2001280132210a01691203534d531a01642201702801300138024003480452017858056202" +
		"39303a0172420161",
		&ChallengeRenew{MethodId: "i", Method: "SMS", Digest: &Digest{Key: "k"}, Check: true, Deadline: 1,
			Message: &Outgoing{Id: "i", Channel: "SMS", Destination: []byte("d"), Prefix: "p", Proven: true, State: 1,
				CreatedAt: 2, ExpiresAt: 3, LeaseUntil: 4, Payload: []byte("x"), Generation: 5, Dial: "90"}, RequestId: "r",
			Ip: "a"}},
	{"0a260a016912016118012001280232180a01691203534d531a0168200128023003380140044a01371201751a017320012a01" +
		"7432016c380140014802",
		&ChallengeRenewed{Challenge: &ChallengeView{Id: "i", Action: "a", Completed: true, CreatedAt: 1, ExpiresAt: 2,
			Methods: []*Method{{Id: "i", Name: "SMS", Hint: "h", LifetimeMs: 1, RenewMs: 2, ExpiresAt: 3, Completed: true,
				Generation: 4, Number: "7"}}}, UserId: "u", Subject: "s", Generation: 1, Template: "t", Language: "l", Decoy: true,
			Proven: true, LifetimeMs: 2}},
	{"08011002",
		&ChallengeResult{WaitMs: 1, Deadline: 2}},
	{"0a016e100118022003",
		&ChallengeSubscribe{Node: "n", Sockets: 1, After: 2, Deadline: 3}},
	{"080112190a01631201611a0d08011201691a03534d5322016f20012802",
		&ChallengeSubscribed{Refused: 1, News: &ChallengeNews{ChallengeId: "c", Action: "a",
			Events: []*Event{{Number: 1, MethodId: "i", Method: "SMS", Outcome: []byte("o")}}, Gone: true, ExpiresAt: 2}}},
	{"0a01631201611801220a0a03534d531201641801280230033a0608011002180342080801100218032004",
		&UserReserve{ChallengeId: "c", Action: "a", ExpiresAt: 1,
			Sendings: []*Sending{{Channel: "SMS", Destination: []byte("d"), Proven: true}}, Deadline: 2, MaxOpen: 3,
			Caps: &Caps{DestinationHour: 1, DestinationDay: 2, UserDay: 3},
			Push: &PushCaps{Pending: 1, Denials: 2, WindowMs: 3, PauseMs: 4}}},
	{"0a0163120201001801",
		&UserReserved{Supersede: []string{"c"}, Send: []bool{true, false}, NoPush: true}},
	{"0a060a044d41494c120218011802",
		&UserSend{Sending: &Sending{Channel: "MAIL"}, Caps: &Caps{UserDay: 1}, Deadline: 2}},
	{"0801",
		&UserSent{Send: true}},
	{"0a017512016e1801",
		&PresenceSay{UserId: "u", Name: "n", Leaves: true}},
	{"0a080a017512016e1801",
		&PresenceOthers{Others: []*Present{{UserId: "u", Name: "n", Since: 1}}}},
}

func TestEarlierBytesMeanTheSame(t *testing.T) {
	for _, e := range earlier {
		b := storetest.Value(hex.DecodeString(e.bytes))(t)
		got := e.m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(b, got); err != nil || !proto.Equal(got, e.m) {
			t.Errorf("%T: read %v, %v", e.m, got, err)
		}
		if again, err := (proto.MarshalOptions{Deterministic: true}).Marshal(e.m); err != nil ||
			hex.EncodeToString(again) != e.bytes {
			t.Errorf("%T is written %x, %v", e.m, again, err)
		}
		if len(got.ProtoReflect().GetUnknown()) > 0 {
			t.Errorf("%T: something of it is not known any more", e.m)
		}
	}
}

// A field that a later version adds is ignored.
func TestLaterFieldsArePassedOver(t *testing.T) {
	b := storetest.Value(proto.Marshal(&ChallengeResult{WaitMs: 7, Deadline: 9}))(t)
	got := &ChallengeResult{}
	if err := proto.Unmarshal(append(b, 0xf8, 0x06, 0x2a), got); err != nil || got.WaitMs != 7 || got.Deadline != 9 {
		t.Errorf("%v, %v", got, err)
	}
}
