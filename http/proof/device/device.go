// Package device serves the extension endpoints with which account owners register, list and
// delete the devices that answer pushes (D-AUTH-06, D-EXT-01), and with which a device raises an
// alarm (D-EXT-09).
//
// Start reading at Endpoints. Every rule is in domain/proof/device.
package device

import (
	"context"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/sorting"
	"castellan/domain/proof/device"
	"castellan/domain/session/session"
	"castellan/http/auth"
	"castellan/http/rest"
)

const section = "Extensions: devices"

// Group serves the endpoints.
type Group struct {
	Service *device.Service
	Alarms  *session.Alarms
}

func (g Group) Endpoints() []rest.Endpoint {
	const devices = "/auth/devices"
	return rest.Section(section,
		rest.Start2FA("POST", devices,
			"Register a device after a challenge; the new key signs the request",
			rest.User, device.ActionAdd, g.add, fault.InvalidField, fault.DeviceSignatureRequired, fault.DeviceSignatureInvalid,
			fault.RecordAlreadyExist,
			fault.RecordLimitReached).HashBody().TakesRecovery().
			Try(`{"publicKey":${tablet.jwk},"brand":"Google","model":"Pixel Tablet","description":"My tablet",
				"platform":"android"}`).
			Doc("addDevice",
				"Starts a challenge. The request is signed with the new key in the header device-signature, beside x-auth, "+
					"which proves that the device holds the key. A passkey is registered by attestation instead of publicKey, "+
					"without device-signature. When the challenge is complete, execResult.data contains the deviceId."),
		rest.Post(devices+"/passkey", "Get the options for the registration of a passkey", rest.User, g.create).
			Try("").
			Doc("createPasskey",
				"Returns PublicKeyCredentialCreationOptionsJSON (WebAuthn Level 3) for navigator.credentials.create. Send its "+
					"result as attestation to addDevice within 10 minutes."),
		rest.Get(devices, "List the caller's devices, newest first", rest.User, g.list).
			Doc("listDevices", "Returns only devices of the caller."),
		rest.Start2FA("DELETE", devices, "Delete a device of the caller after a challenge", rest.User,
			device.ActionRemove, g.remove,
			fault.InvalidField, fault.RecordNotFound).TakesRecovery().
			Try(`{"deviceId":"${addDevice.result.execResult.data.deviceId}"}`).
			Doc("deleteDevice",
				"Starts a challenge. When it is complete, signatures of the device are refused."),
		rest.Post(devices+"/alarm", "Report a challenge that the account owner did not start", rest.Device, g.alarm,
			fault.InvalidField, fault.ChallengeNotFound).HashBody().
			Try(`{"challengeId":"${challenge.id}"}`).
			Doc("raiseAlarm",
				"Ends all sessions of the account, closes all of its challenges, and notifies the account owner. The device "+
					"signs the request. Deny the challenge first: then the denial is part of its evidence. The challenge may have "+
					"ended."),
	).Extended()
}

type addRequest struct {
	PublicKey   *rest.JSON `json:"publicKey" schema:"Jwk" doc:"alternative to attestation"`
	Attestation *rest.JSON `json:"attestation" schema:"PasskeyAttestation" doc:"RegistrationResponseJSON of a passkey"`
	Brand       string     `json:"brand" doc.maxLength:"128"`
	Model       string     `json:"model" doc.maxLength:"128"`
	Description string     `json:"description" blank:"ok" doc.maxLength:"128"`
	Platform    string     `json:"platform" example:"android" doc.maxLength:"128"`
	PushTarget  *rest.JSON `json:"pushTarget" schema:"PushTarget"`
}

// MissingFields requires a key or the attestation of a passkey.
func (in *addRequest) MissingFields() []fault.Problem {
	if in.PublicKey == nil && in.Attestation == nil {
		return []fault.Problem{{Field: "publicKey", Message: "is required"}}
	}
	return nil
}

// Validate refuses both, and a pushTarget of a passkey, which no push reaches.
func (in *addRequest) Validate() error {
	switch {
	case in.Attestation == nil:
		return nil
	case in.PublicKey != nil:
		return fault.Invalid("attestation", "send either publicKey or attestation")
	case in.PushTarget != nil:
		return fault.Invalid("pushTarget", "is not for passkeys")
	}
	return nil
}

func (g Group) create(ctx context.Context, who rest.Caller, _ rest.None) (rest.Data[created], error) {
	options, err := g.Service.Create(ctx, who.UserID)
	return rest.Data[created]{Data: created{rest.JSON(options)}}, err
}

type created struct {
	PublicKey rest.JSON `json:"publicKey" schema:"PasskeyCreation"`
}

func (created) SchemaName() string { return "PasskeyCreationOptions" }

func (g Group) add(ctx context.Context, who rest.Caller, in addRequest) (device.Registration, error) {
	r := device.Registration{Brand: in.Brand, Model: in.Model, Description: in.Description, Platform: in.Platform}
	if in.Attestation != nil {
		return g.Service.RegisterPasskey(ctx, who.UserID, r, *in.Attestation)
	}
	var err error
	if r.Key, err = device.ParseKey(*in.PublicKey); err != nil {
		return r, err
	}
	if in.PushTarget != nil {
		if r.Target, err = device.ParseTarget(*in.PushTarget, g.Service.Loopback); err != nil {
			return r, err
		}
	}
	return g.Service.Register(ctx, who.UserID, auth.Signed(who), r)
}

// record is the wire shape of a device (D-EXT-01).
type record struct {
	DeviceID    string     `json:"deviceId"`
	Brand       string     `json:"brand"`
	Model       string     `json:"model"`
	Description string     `json:"description"`
	Platform    string     `json:"platform"`
	Status      string     `json:"status" enum:"ACTIVE"`
	CreatedAt   rest.Time  `json:"createdAt"`
	LastUsedAt  *rest.Time `json:"lastUsedAt" doc:"null if the device has not signed a request yet"`
	// Kind and BackedUp are present for passkeys.
	Kind     string `json:"kind,omitempty" enum:"PASSKEY" doc:"present for a passkey"`
	BackedUp *bool  `json:"backedUp,omitempty" doc:"of a passkey: whether its authenticator has a backup"`
}

func (g Group) list(ctx context.Context, who rest.Caller, _ rest.None) ([]record, error) {
	devices, err := g.Service.Store.List(ctx, who.UserID)
	if err != nil {
		return nil, err
	}
	out := rest.Each(devices, func(d device.Device) record {
		return record{DeviceID: d.ID, Brand: d.Brand, Model: d.Model, Description: d.Description, Platform: d.Platform,
			Status: string(d.Status), CreatedAt: rest.Time{Time: d.CreatedAt}, LastUsedAt: rest.At(d.LastUsedAt)}
	})
	passkeys, err := g.Service.ListPasskeys(ctx, who.UserID)
	for _, p := range passkeys {
		out = append(out, record{DeviceID: p.DeviceID, Brand: p.Brand, Model: p.Model, Description: p.Description,
			Platform: p.Platform, Status: string(device.Active), CreatedAt: rest.Time{Time: p.CreatedAt},
			LastUsedAt: rest.At(p.LastUsedAt), Kind: "PASSKEY", BackedUp: &p.BackedUp})
	}
	sorting.Stable(out, func(a, b record) int { return b.CreatedAt.Compare(a.CreatedAt.Time) })
	return out, err
}

type removeRequest struct {
	DeviceID string `json:"deviceId"`
}

func (g Group) remove(ctx context.Context, who rest.Caller, in removeRequest) (device.Removal, error) {
	return g.Service.Removable(ctx, who.UserID, in.DeviceID)
}

type alarmRequest struct {
	ChallengeID string `json:"challengeId" doc:"a challenge of the account"`
}

type alarmed struct {
	Ended int `json:"ended" doc:"number of sessions that ended"`
}

func (g Group) alarm(ctx context.Context, who rest.Caller, in alarmRequest) (rest.Data[alarmed], error) {
	by := who.By()
	by.UserID = who.OwnerID
	n, err := g.Alarms.Raise(ctx, by, who.DeviceID, in.ChallengeID)
	return rest.Data[alarmed]{Data: alarmed{n}}, err
}
