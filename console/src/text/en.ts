import app from './en/app.json';
import kit from './en/kit.json';
import delivery from './en/delivery.json';
import guard from './en/guard.json';
import access from './en/access.json';
import money from './en/money.json';
import office from './en/office.json';
import people from './en/people.json';

export default { ...app, ...kit, ...delivery, ...guard, ...access, ...money, ...office, ...people };
