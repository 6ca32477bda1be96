// Package mfa owns the configuration of the second factor (section 2.2 of the interface): methods with their
// lifetimes, actions with their texts, and policies. A policy says which methods guard an action and how many of them
// must be completed. For a new challenge, a snapshot of the three returns the methods that the action requires of the
// user.
//
// Start reading at Catalog.Plan (plan.go), which makes that choice. The pure functions of validate.go check writes,
// and Admin makes them (service.go); Cache holds the node's snapshot. The package implements section 4.4 and decisions
// D-MFA-01…12, D-2FA-08, D-2FA-10…12 and D-PWD-02.
package mfa

import (
	"reflect"

	"castellan/domain/factor/challenge"
)

// The methods of a new installation; any other code may be added (D-MFA-11).
const (
	SMS  = "SMS"
	MAIL = "MAIL"
	PUSH = "PUSH"
	TOTP = "TOTP"
)

// The built-in actions (section 2.1 of the interface, D-MFA-05).
const (
	Login           = "LOGIN"
	ResetPassword   = "RESET_PASSWORD"
	UpdatePassword  = "UPDATE_PASSWORD"
	TOTPSetup       = "TOTP_SETUP"
	TOTPDeactivate  = "TOTP_DEACTIVATE"
	GeofilterAdd    = "GEOFILTER_ADD"
	GeofilterRemove = "GEOFILTER_REMOVE"
	DuringVideoKYC  = "DURING_VIDEO_KYC"
	VerifyEmail     = "VERIFY_EMAIL"
	DeviceAdd       = "DEVICE_ADD"
	DeviceRemove    = "DEVICE_REMOVE"
	ApproveRequest  = "APPROVE_REQUEST"
	Register        = "REGISTER"
	Withdraw        = "WITHDRAW"
)

// Method is the configuration of one kind of factor. Its Code is unique.
type Method struct {
	Code         string `audit:"-"` // the target
	ExpireMs     int64  // validity; 0: as long as the challenge (D-2FA-03)
	RenewStartMs int64  // from creation until a renewal is possible; 0: never
}

// Name returns the wire name of the method's kind. It returns false for a code of no known kind, which is stored but
// never offered.
func (m Method) Name() (challenge.Name, bool) { return challenge.ParseName(m.Code) }

// Action is the description of an action that a challenge can guard. Its Code is unique.
type Action struct {
	Code    string `audit:"-"` // the target
	Title   Text
	Headers Headers `json:"infoTableHeaders"`
}

func (a Action) Equal(b Action) bool {
	return a.Code == b.Code && a.Title.Equal(b.Title) && a.Headers.Equal(b.Headers)
}

// EntityType is the kind of entity a policy targets.
type EntityType string

// The kinds of entities.
const (
	General EntityType = "GENERAL"
	UserID  EntityType = "USER_ID"
	IP      EntityType = "IP"
)

// Common is the only policy type; a policy of another type is listed and never applied.
const Common = "COMMON"

// Policy says which methods guard an action and how many of them must be completed. It is unique per action, type and
// entity.
type Policy struct {
	ID         int64 `audit:"-"` // the target
	ActionCode string
	Name       string
	EntityType EntityType
	EntityID   string // the user id or IP address targeted; "" for General
	ExpireAt   int64  // epoch ms; 0: never
	Type       string
	Methods    []Choice // in the order of the offer
	Required   int
	// NumberMatching requires the approval of a push to name the number that the starter of the challenge sees
	// (SEC-16).
	NumberMatching bool
	// SignIntent requires the proof of a push to sign the intent of the challenge (D-EXT-09).
	SignIntent bool
	// RememberDays is for how many days a client may be remembered, so that one method of it counts as completed
	// (D-AUTH-17); 0: never. RememberAnyway allows that for an action that moves money or changes credentials.
	RememberDays   int
	RememberAnyway bool
	// PhishingResistant requires a push whose proof resists phishing: an assertion of a passkey (D-AUTH-18).
	PhishingResistant bool
	// PasskeyAlone lets a login by a passkey need no further method (D-AUTH-18).
	PasskeyAlone bool
	// Preferred has no effect (D-MFA-03); nil: not set. The interface spells it "preffered".
	Preferred *int
}

// Preference returns the displayed value of Preferred: Required if it is not set.
func (p Policy) Preference() int {
	if p.Preferred != nil {
		return *p.Preferred
	}
	return p.Required
}

func (p Policy) Expired(nowMs int64) bool { return p.ExpireAt != 0 && nowMs >= p.ExpireAt }

func (p Policy) Equal(q Policy) bool {
	preferred := p.Preference() == q.Preference()
	p.Preferred, q.Preferred = nil, nil
	return preferred && reflect.DeepEqual(p, q)
}
