import app from './tr/app.json';
import kit from './tr/kit.json';
import user from './tr/user.json';
import kyc from './tr/kyc.json';
import money from './tr/money.json';
import content from './tr/content.json';
import security from './tr/security.json';
import system from './tr/system.json';
import own from './tr/own.json';
import state from './tr/state.json';

export default { ...app, ...kit, ...user, ...kyc, ...money, ...content, ...security, ...system, ...own, ...state };
